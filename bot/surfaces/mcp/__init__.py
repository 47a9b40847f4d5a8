"""The MCP server: lookups and questions as tools of editors and agents, over standard input or HTTP."""
