import { Empty, html } from "../ui.js";

export const title = "Graph";

export default function Page() {
  return html`<${Empty} title="Soon" />`;
}
