"""What was asked for and is carried out by whoever has time: answers and refreshes, in this process or in any."""
