"""What operators see: structured logs, metrics, health. Never SQL, a result or an exact count."""
