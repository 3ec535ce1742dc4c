import java.io.BufferedWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.types.RowType;

/**
 * DumpTable WAREHOUSE FILE COLUMN...: the merged rows of all tables as Paimon's own reader sees
 * them, as tab-separated text. The column @table is the name of the table.
 */
public class DumpTable {
  private DumpTable() {}

  public static void main(String[] arguments) throws Exception {
    List<String> columns = Arrays.asList(arguments).subList(2, arguments.length);
    String database = Orders.NAME.getDatabaseName();
    try (Catalog catalog = Orders.catalog(arguments[0]);
        Writer out =
            new BufferedWriter(
                Files.newBufferedWriter(Paths.get(arguments[1]), StandardCharsets.UTF_8),
                1 << 20)) {
      for (String name : catalog.listTables(database)) {
        if (name.startsWith(Orders.NAME.getObjectName())) {
          dump(catalog.getTable(Identifier.create(database, name)), columns, out);
        }
      }
    }
  }

  private static void dump(Table table, List<String> columns, Writer out) throws Exception {
    RowType type = table.rowType();
    List<InternalRow.FieldGetter> getters = new ArrayList<>();
    for (String column : columns) {
      int index = type.getFieldIndex(column);
      getters.add(
          column.equals("@table")
              ? row -> table.name()
              : InternalRow.createFieldGetter(type.getTypeAt(index), index));
    }
    ReadBuilder builder = table.newReadBuilder();
    try (RecordReader<InternalRow> rows =
        builder.newRead().createReader(builder.newScan().plan())) {
      RecordReader.RecordIterator<InternalRow> batch;
      while ((batch = rows.readBatch()) != null) {
        for (InternalRow row = batch.next(); row != null; row = batch.next()) {
          write(row, getters, out);
        }
        batch.releaseBatch();
      }
    }
  }

  private static void write(InternalRow row, List<InternalRow.FieldGetter> getters, Writer out)
      throws Exception {
    for (int i = 0; i < getters.size(); i++) {
      Object value = getters.get(i).getFieldOrNull(row);
      out.append(value == null ? "\\N" : value.toString());
      out.append(i + 1 < getters.size() ? '\t' : '\n');
    }
  }
}
