import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ResultKind;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * FlinkSql FILE: the statements of a file in one JVM, as Flink's SQL client takes them. Rows go to
 * standard output, one a line, tab between values. Settings hold for all statements of the file.
 */
public final class FlinkSql {
  private static final Pattern SET = Pattern.compile("SET '([^']+)' = '([^']+)'");

  private FlinkSql() {}

  public static void main(String[] arguments) throws Exception {
    String text = Files.readString(Path.of(arguments[0])).replaceAll("--[^\n]*", "");
    Configuration settings = new Configuration();
    settings.setString("parallelism.default", "1");
    settings.setString("rest.bind-address", "127.0.0.1");
    List<String> statements = new ArrayList<>();
    for (String part : text.split(";")) {
      Matcher set = SET.matcher(part.strip());
      if (set.matches()) {
        settings.setString(set.group(1), set.group(2));
      } else if (!part.isBlank()) {
        statements.add(part.strip());
      }
    }
    TableEnvironment flink =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().withConfiguration(settings).build());
    for (String statement : statements) {
      show(flink.executeSql(statement));
    }
    System.exit(0);
  }

  private static void show(TableResult result) throws Exception {
    if (result.getResultKind() != ResultKind.SUCCESS_WITH_CONTENT) {
      return;
    }
    try (CloseableIterator<Row> rows = result.collect()) {
      while (rows.hasNext()) {
        Row row = rows.next();
        StringBuilder line = new StringBuilder();
        for (int at = 0; at < row.getArity(); at++) {
          line.append(at == 0 ? "" : "\t").append(row.getField(at));
        }
        System.out.println(line);
      }
    }
  }
}
