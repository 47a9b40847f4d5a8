"""The parts that the fake platforms share: their time, their bell, and the faults that a test orders."""
