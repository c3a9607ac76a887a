"""Channel planning, checking and replay for tables that one machine cannot hold."""
