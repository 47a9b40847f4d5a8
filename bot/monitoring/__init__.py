"""What operators see of the process: health, metrics, logs, the observer port, the watchdog, doctor findings."""
