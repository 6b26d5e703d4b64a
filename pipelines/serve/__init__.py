"""`rocsteady serve` and `rocsteady watch`."""
