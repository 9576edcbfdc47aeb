"""Facts: one file a noun and language. Cards' checks decide over them; transforms do not decide."""
