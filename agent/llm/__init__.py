"""Chat models at the other end of a network: how they are built, asked, and what their failures mean."""
