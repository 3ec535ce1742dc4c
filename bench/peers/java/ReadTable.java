import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.fs.Path;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;

/** Reads a table for each line of its input and prints one line of JSON each time. */
public final class ReadTable {
    public static void main(String[] args) throws Exception {
        Table table =
                CatalogFactory.createCatalog(CatalogContext.create(new Path(args[0])))
                        .getTable(Identifier.create("db", "t"));
        int threads = Integer.parseInt(args[1]);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        BufferedReader rounds = new BufferedReader(new InputStreamReader(System.in));
        while (rounds.readLine() != null) {
            long wall = System.nanoTime();
            long cpu = cpu();
            long[] found = read(table, pool);
            System.out.printf(
                    "{\"rows\":%d,\"sum\":%d,\"wall\":%f,\"cpu\":%f}%n",
                    found[0], found[1], (System.nanoTime() - wall) / 1e9, (cpu() - cpu) / 1e9);
        }
        pool.shutdown();
    }

    /** Rows, and the sum of their second column; every column of every row is looked at. */
    private static long[] read(Table table, ExecutorService pool) throws Exception {
        ReadBuilder builder = table.newReadBuilder();
        List<Future<long[]>> parts = new ArrayList<>();
        for (Split split : builder.newScan().plan().splits()) {
            parts.add(
                    pool.submit(
                            () -> {
                                long[] found = new long[3];
                                try (RecordReader<InternalRow> reader =
                                        builder.newRead().createReader(split)) {
                                    reader.forEachRemaining(row -> look(row, found));
                                }
                                return found;
                            }));
        }
        long[] all = new long[3];
        for (Future<long[]> part : parts) {
            for (int i = 0; i < all.length; i++) {
                all[i] += part.get()[i];
            }
        }
        return all;
    }

    private static void look(InternalRow row, long[] found) {
        found[0]++;
        found[1] += row.getLong(1);
        found[2] += row.getLong(0) + row.getString(2).getSizeInBytes() + (long) row.getDouble(3)
                + row.getDecimal(4, 12, 2).toUnscaledLong() + row.getTimestamp(5, 3).getMillisecond();
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean)
                        java.lang.management.ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }
}
