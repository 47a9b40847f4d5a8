"""The page: a browser asks, follows answers while they grow, and sees how they were found."""
