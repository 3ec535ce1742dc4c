import org.apache.paimon.data.GenericRow;

/** A row on its way to a writer, with its bucket or, with dynamic buckets, the hash of its key. */
record Routed(GenericRow row, int bucketOrHash) {}
