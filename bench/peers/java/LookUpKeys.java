import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.query.LocalTableQuery;
import org.apache.paimon.table.sink.RowKeyExtractor;
import org.apache.paimon.table.source.DataSplit;

/** Looks up the keys of each line with Paimon's LocalTableQuery, and prints a line of JSON. */
public class LookUpKeys {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        LocalTableQuery query = null;
        RowKeyExtractor extractor = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            long wall = System.nanoTime();
            long cpu = cpu();
            if (query == null) {
                FileStoreTable table =
                        FileStoreTableFactory.create(
                                LocalFileIO.create(), new Path(arguments[0] + "/db.db/t"));
                query = table.newLocalTableQuery();
                query.withIOManager(IOManager.create(arguments[1]));
                extractor = table.createRowKeyExtractor();
                Map<Integer, List<DataFileMeta>> buckets = new LinkedHashMap<>();
                Map<Integer, DataSplit> splits = new LinkedHashMap<>();
                for (DataSplit split : table.newSnapshotReader().read().dataSplits()) {
                    splits.put(split.bucket(), split);
                    buckets.computeIfAbsent(split.bucket(), b -> new ArrayList<>())
                            .addAll(split.dataFiles());
                }
                for (int bucket : buckets.keySet()) {
                    query.refreshFiles(
                            splits.get(bucket).partition(),
                            bucket,
                            Collections.emptyList(),
                            buckets.get(bucket));
                }
            }
            long rows = 0, sum = 0;
            for (String id : line.split(",")) {
                extractor.setRecord(GenericRow.of(Long.parseLong(id), null, null, null, null, null));
                InternalRow row =
                        query.lookup(
                                extractor.partition(),
                                extractor.bucket(),
                                extractor.trimmedPrimaryKey());
                if (row != null) {
                    rows++;
                    sum += row.getLong(1);
                }
            }
            System.out.printf(
                    "{\"rows\": %d, \"sum\": %d, \"wall\": %.6f, \"cpu\": %.6f}%n",
                    rows, sum, (System.nanoTime() - wall) / 1e9, (cpu() - cpu) / 1e9);
        }
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }
}
