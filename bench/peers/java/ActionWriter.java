import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.TopicPartition;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.transformations.SourceTransformation;
import org.apache.paimon.flink.action.ActionFactory;
import org.apache.paimon.flink.action.cdc.SynchronizationActionBase;

/**
 * ActionWriter ACTION BOOTSTRAP TOPIC WAREHOUSE CHECKPOINT_SECONDS OPTION...: Paimon's CDC action
 * kafka_sync_table or kafka_sync_database, parallelism 2, in one JVM, up to the ends that the topic
 * has at the start.
 */
public class ActionWriter {
  private ActionWriter() {}

  public static void main(String[] arguments) throws Exception {
    Configuration settings = new Configuration();
    settings.setString("parallelism.default", "2");
    settings.setString("execution.runtime-mode", "streaming");
    settings.setString("execution.checkpointing.interval", arguments[4] + "s");
    settings.setString("restart-strategy.type", "none");
    settings.setString("rest.bind-address", "127.0.0.1");
    StreamExecutionEnvironment flink =
        StreamExecutionEnvironment.getExecutionEnvironment(settings);
    SynchronizationActionBase action =
        (SynchronizationActionBase)
            ActionFactory.createAction(words(arguments)).orElseThrow(IllegalStateException::new);
    action.withStreamExecutionEnvironment(flink);
    action.build();
    for (Transformation<?> sink : flink.getTransformations()) {
      for (Transformation<?> step : sink.getTransitivePredecessors()) {
        if (step instanceof SourceTransformation) {
          end((KafkaSource<?>) ((SourceTransformation<?, ?, ?>) step).getSource());
        }
      }
    }
    FirstRecord.forget();
    flink.execute();
    FirstRecord.report(Events.count(arguments[1], arguments[2]));
    System.exit(0);
  }

  private static String[] words(String[] arguments) {
    String action = arguments[0];
    List<String> words = new ArrayList<>(Arrays.asList(action, "--warehouse", arguments[3]));
    words.addAll(Arrays.asList("--database", Orders.NAME.getDatabaseName()));
    words.addAll(Arrays.asList("--primary_keys", "order_id"));
    if (action.equals("kafka_sync_table")) {
      words.addAll(Arrays.asList("--table", Orders.NAME.getObjectName()));
    }
    for (String setting :
        List.of(
            "properties.bootstrap.servers=" + arguments[1],
            "topic=" + arguments[2],
            "value.format=debezium-json",
            "scan.startup.mode=earliest-offset",
            "properties.group.id=bench-action",
            "properties.interceptor.classes=" + First.class.getName())) {
      words.addAll(Arrays.asList("--kafka_conf", setting));
    }
    for (String option : Arrays.asList(arguments).subList(5, arguments.length)) {
      words.addAll(Arrays.asList("--table_conf", option));
    }
    return words.toArray(new String[0]);
  }

  /** The actions read for ever, and no option of theirs ends them. */
  private static void end(KafkaSource<?> source) throws Exception {
    set(source, "boundedness", Boundedness.BOUNDED);
    set(source, "stoppingOffsetsInitializer", OffsetsInitializer.latest());
  }

  private static void set(KafkaSource<?> source, String name, Object value) throws Exception {
    Field field = KafkaSource.class.getDeclaredField(name);
    field.setAccessible(true);
    field.set(source, value);
  }

  /** FirstRecord for the Kafka client that the actions bring along under another name. */
  public static class First implements ConsumerInterceptor<byte[], byte[]> {
    @Override
    public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
      FirstRecord.note(records.isEmpty());
      return records;
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {}

    @Override
    public void close() {}

    @Override
    public void configure(Map<String, ?> configs) {}
  }
}
