"""The evaluator over HTTP and on a cluster; no judging logic of its own."""
