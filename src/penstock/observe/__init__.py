"""What a user can see of the warehouse: status, history, graph, explain. It reads the catalog and changes nothing."""
