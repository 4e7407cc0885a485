"""What a run can be told: how it is written, and checked at the door."""
