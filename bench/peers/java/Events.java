import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** What lies in a topic now. */
class Events {
  private Events() {}

  static KafkaConsumer<byte[], byte[]> consumer(String bootstrap) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
    properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
    properties.put("enable.auto.commit", "false");
    properties.put("interceptor.classes", FirstRecord.class.getName());
    properties.put("max.poll.records", "5000");
    properties.put("max.partition.fetch.bytes", "4194304");
    return new KafkaConsumer<>(properties);
  }

  static Map<TopicPartition, Long> ends(KafkaConsumer<?, ?> consumer, String topic) {
    Set<TopicPartition> partitions = new HashSet<>();
    consumer
        .partitionsFor(topic)
        .forEach(one -> partitions.add(new TopicPartition(topic, one.partition())));
    return consumer.endOffsets(partitions);
  }

  static long count(String bootstrap, String topic) {
    try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap)) {
      Map<TopicPartition, Long> ends = ends(consumer, topic);
      Map<TopicPartition, Long> begins = consumer.beginningOffsets(ends.keySet());
      return ends.keySet().stream().mapToLong(one -> ends.get(one) - begins.get(one)).sum();
    }
  }
}
