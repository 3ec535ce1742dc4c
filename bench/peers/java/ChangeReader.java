import com.fasterxml.jackson.core.JsonFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.index.BucketAssigner;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;
import org.apache.paimon.table.sink.TableWriteImpl;

/** One reader thread: polls its share of the partitions, parses, routes rows to the writers. */
class ChangeReader {
  private static final int BATCH = 1000;
  private static final Duration WAIT = Duration.ofMillis(200);

  private final FileStoreTable table;
  private final int number;
  private final int commitEvery;
  private final List<BlockingQueue<List<Routed>>> out;
  private final List<List<Routed>> batches = new ArrayList<>();

  ChangeReader(
      FileStoreTable table, int number, int commitEvery, List<BlockingQueue<List<Routed>>> out) {
    this.table = table;
    this.number = number;
    this.commitEvery = commitEvery;
    this.out = out;
    out.forEach(writer -> batches.add(new ArrayList<>(BATCH)));
  }

  long run(String bootstrap, String topic) throws Exception {
    long events = 0;
    boolean dynamic = table.bucketMode() == BucketMode.HASH_DYNAMIC;
    JsonFactory json = new JsonFactory();
    RowPartitionKeyExtractor keys = new RowPartitionKeyExtractor(table.schema());
    try (KafkaConsumer<byte[], byte[]> consumer = Events.consumer(bootstrap);
        TableWriteImpl<?> router = table.newWrite("router")) {
      Map<TopicPartition, Long> ends = Events.ends(consumer, topic);
      ends.keySet().removeIf(one -> one.partition() % JavaWriter.THREADS != number);
      consumer.assign(ends.keySet());
      consumer.seekToBeginning(ends.keySet());
      while (ends.entrySet().stream().anyMatch(e -> consumer.position(e.getKey()) < e.getValue())) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(WAIT)) {
          if (record.value() == null) {
            continue;
          }
          GenericRow row = RowParser.parse(json, record.value());
          if (dynamic) {
            int hash = keys.trimmedPrimaryKey(row).hashCode();
            int partition = BinaryRow.EMPTY_ROW.hashCode();
            int threads = JavaWriter.THREADS;
            send(BucketAssigner.computeAssigner(partition, hash, threads, threads), row, hash);
          } else {
            int bucket = router.getBucket(row);
            send(bucket % JavaWriter.THREADS, row, bucket);
          }
          if (++events % commitEvery == 0) {
            flush(JavaWriter.END_OF_COMMIT);
          }
        }
      }
    }
    flush(JavaWriter.END_OF_TOPIC);
    return events;
  }

  private void send(int writer, GenericRow row, int bucketOrHash) throws InterruptedException {
    List<Routed> batch = batches.get(writer);
    batch.add(new Routed(row, bucketOrHash));
    if (batch.size() == BATCH) {
      out.get(writer).put(batch);
      batches.set(writer, new ArrayList<>(BATCH));
    }
  }

  private void flush(List<Routed> mark) throws InterruptedException {
    for (int writer = 0; writer < out.size(); writer++) {
      out.get(writer).put(batches.get(writer));
      out.get(writer).put(mark);
      batches.set(writer, new ArrayList<>(BATCH));
    }
  }
}
