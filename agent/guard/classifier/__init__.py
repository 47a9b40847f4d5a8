"""The operator's own injection classifier: its model folder, the ONNX model, and running it outside the event loop."""
