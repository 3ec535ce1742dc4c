import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Notes when the first record left Kafka: there the start-up ends and the streaming begins. */
public class FirstRecord implements ConsumerInterceptor<byte[], byte[]> {
  private static volatile long at;

  /** One line of JSON for who started the program: times in milliseconds since 1970. */
  static void report(long events) {
    System.out.printf(
        "{\"first_ms\": %d, \"end_ms\": %d, \"events\": %d}%n",
        at, System.currentTimeMillis(), events);
    System.out.flush();
  }

  /** What a client received; only the first records count. */
  static void note(boolean empty) {
    if (at == 0 && !empty) {
      at = System.currentTimeMillis();
    }
  }

  /** Forget records that were read before the streaming. */
  static void forget() {
    at = 0;
  }

  @Override
  public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
    note(records.isEmpty());
    return records;
  }

  @Override
  public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {}

  @Override
  public void close() {}

  @Override
  public void configure(Map<String, ?> configs) {}
}
