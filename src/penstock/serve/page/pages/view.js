import { Empty, html } from "../ui.js";

export const title = "View";

export default function Page() {
  return html`<${Empty} title="Soon" />`;
}
