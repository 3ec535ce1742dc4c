import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.types.Types;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/** Iceberg's own reader: one request {"folder", or "metastore" or "rest" with "token", and "name", "tag"?} a line, one reply {"rows"} or {"error"} a line. */
public class IcebergReader {

    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        out.println("ready");
        for (String line; (line = in.readLine()) != null; ) {
            ObjectNode reply = JSON.createObjectNode();
            try {
                read(JSON.readTree(line), reply.putArray("rows"));
            } catch (Throwable e) {
                reply.put("error", String.valueOf(e));
            }
            out.println(reply);
        }
    }

    static void read(JsonNode request, ArrayNode rows) throws Exception {
        Table table = load(request);
        IcebergGenerics.ScanBuilder scan = IcebergGenerics.read(table);
        if (request.hasNonNull("tag"))
            scan = scan.useSnapshot(table.snapshot(request.get("tag").asText()).snapshotId());
        try (CloseableIterable<Record> records = scan.build()) {
            for (Record record : records)
                rows.add(cell(record));
        }
    }

    static Table load(JsonNode request) {
        if (request.hasNonNull("rest"))
            return rest(request);
        if (!request.hasNonNull("metastore"))
            return new HadoopTables(new Configuration()).load(request.get("folder").asText());
        HiveCatalog catalog = new HiveCatalog();
        catalog.setConf(new Configuration());
        catalog.initialize("hive", Map.of("uri", request.get("metastore").asText()));
        return catalog.loadTable(TableIdentifier.parse(request.get("name").asText()));
    }

    static Table rest(JsonNode request) {
        RESTCatalog catalog = new RESTCatalog();
        catalog.setConf(new Configuration());
        Map<String, String> settings = Map.of(
                "uri", request.get("rest").asText(), "token", request.get("token").asText(), "warehouse", "lake");
        catalog.initialize("rest", settings);
        return catalog.loadTable(TableIdentifier.parse(request.get("name").asText()));
    }

    /** Times in microseconds, decimals as text and bytes as hexadecimal text, as the test writes them. */
    static JsonNode cell(Object value) {
        if (value instanceof Record record) {
            ObjectNode row = JSON.createObjectNode();
            for (Types.NestedField field : record.struct().fields())
                if (!MetadataColumns.isMetadataColumn(field.name())) // of readers with deletion vectors
                    row.set(field.name(), cell(record.getField(field.name())));
            return row;
        }
        if (value instanceof ByteBuffer bytes) {
            byte[] copy = new byte[bytes.remaining()];
            bytes.duplicate().get(copy);
            return JSON.valueToTree(HexFormat.of().formatHex(copy));
        }
        if (value instanceof LocalDateTime time)
            return JSON.valueToTree(ChronoUnit.MICROS.between(LocalDateTime.of(1970, 1, 1, 0, 0), time));
        if (value instanceof LocalDate || value instanceof BigDecimal)
            return JSON.valueToTree(value.toString());
        if (value instanceof List<?> list) {
            ArrayNode array = JSON.createArrayNode();
            list.forEach(item -> array.add(cell(item)));
            return array;
        }
        return JSON.valueToTree(value);
    }
}
