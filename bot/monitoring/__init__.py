"""Monitoring for operators: health, metrics, logs, the observer port, the watchdog, doctor findings."""
