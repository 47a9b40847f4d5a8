"""The page: a browser asks, follows growing answers, and sees how they were found."""
