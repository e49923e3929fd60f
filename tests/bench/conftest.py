"""Makes the parts beside it (``bench_records``, ``bench_synthetic``) known to the folders below."""
