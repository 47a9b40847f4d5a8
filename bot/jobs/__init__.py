"""Jobs, which are answers and refreshes that a free worker carries out, in this process or in another."""
