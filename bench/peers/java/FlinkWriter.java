import java.util.StringJoiner;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/**
 * FlinkWriter BOOTSTRAP TOPIC WAREHOUSE CHECKPOINT_SECONDS OPTION...: debezium-json into a Paimon
 * table with Flink SQL, parallelism 2, in one JVM, up to the ends that the topic has at the start,
 * or until it is killed with -Dbench.endless=true.
 */
public class FlinkWriter {
  private static final String COLUMNS =
      "(order_id BIGINT, customer_id BIGINT, status STRING, amount DECIMAL(12,2), note STRING,"
          + " qty INT, price DOUBLE, created_at BIGINT, updated_at BIGINT, region STRING,"
          + " PRIMARY KEY (order_id) NOT ENFORCED)";

  private FlinkWriter() {}

  public static void main(String[] arguments) throws Exception {
    String bootstrap = arguments[0];
    String topic = arguments[1];
    Configuration settings = new Configuration();
    settings.setString("parallelism.default", "2");
    settings.setString("execution.runtime-mode", "streaming");
    settings.setString("execution.checkpointing.interval", arguments[3] + "s");
    settings.setString("table.exec.sink.upsert-materialize", "NONE");
    settings.setString("rest.bind-address", "127.0.0.1");
    TableEnvironment flink =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().withConfiguration(settings).build());
    StringJoiner source = new StringJoiner(", ", " WITH (", ")");
    source.add("'connector'='kafka'").add("'topic'='" + topic + "'");
    source.add("'properties.bootstrap.servers'='" + bootstrap + "'");
    source.add("'properties.group.id'='bench-flink'");
    source.add("'scan.startup.mode'='earliest-offset'");
    if (!Boolean.getBoolean("bench.endless")) {
      source.add("'scan.bounded.mode'='latest-offset'");
    }
    source.add("'properties.interceptor.classes'='" + FirstRecord.class.getName() + "'");
    source.add("'format'='debezium-json'");
    flink.executeSql("CREATE TEMPORARY TABLE changes " + COLUMNS + source);
    StringJoiner options = new StringJoiner(", ", " WITH (", ")");
    Orders.options(arguments, 4)
        .forEach((name, value) -> options.add("'" + name + "'='" + value + "'"));
    String table = "lake." + Orders.NAME.getDatabaseName() + "." + Orders.NAME.getObjectName();
    flink.executeSql(
        "CREATE CATALOG lake WITH ('type'='paimon', 'warehouse'='" + arguments[2] + "')");
    flink.executeSql("CREATE DATABASE IF NOT EXISTS lake." + Orders.NAME.getDatabaseName());
    flink.executeSql("CREATE TABLE IF NOT EXISTS " + table + " " + COLUMNS + options);
    flink.executeSql("INSERT INTO " + table + " SELECT * FROM changes").await();
    FirstRecord.report(Events.count(bootstrap, topic));
    System.exit(0);
  }
}
