import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.utils.Pair;

/** Compacts the tables of some warehouses fully and prints one line of JSON for each. */
public final class CompactTable {
    public static void main(String[] args) throws Exception {
        for (String warehouse : args) {
            FileStoreTable table =
                    ((FileStoreTable)
                                    CatalogFactory.createCatalog(
                                                    CatalogContext.create(new Path(warehouse)))
                                            .getTable(Identifier.create("db", "t")))
                            .copy(Map.of("write-only", "false"));
            long wall = System.nanoTime();
            long cpu = cpu();
            compact(table);
            System.out.printf(
                    "{\"wall\":%f,\"cpu\":%f,\"peak_kb\":%d}%n",
                    (System.nanoTime() - wall) / 1e9, (cpu() - cpu) / 1e9, peakKilobytes());
        }
    }

    private static void compact(FileStoreTable table) throws Exception {
        Set<Pair<BinaryRow, Integer>> buckets = new LinkedHashSet<>();
        for (ManifestEntry entry : table.store().newScan().plan().files()) {
            buckets.add(Pair.of(entry.partition(), entry.bucket()));
        }
        try (IOManager io = IOManager.create(System.getProperty("java.io.tmpdir"));
                TableWriteImpl<?> write = table.newWrite("compactor");
                TableCommitImpl commit = table.newCommit("compactor")) {
            write.withIOManager(io);
            for (Pair<BinaryRow, Integer> bucket : buckets) {
                write.compact(bucket.getLeft(), bucket.getRight(), true);
            }
            commit.commit(Long.MAX_VALUE, write.prepareCommit(true, Long.MAX_VALUE));
        }
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean)
                        java.lang.management.ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    /** The most memory that this process has held. */
    private static long peakKilobytes() throws Exception {
        for (String line : Files.readAllLines(Paths.get("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        return 0;
    }
}
