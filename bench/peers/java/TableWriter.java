import java.nio.file.Files;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.paimon.Snapshot;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.TableWriteImpl;

/** One writer thread: assigns buckets, writes, and prepares a commit when all readers say so. */
class TableWriter {
  private final FileStoreTable table;
  private final int number;
  private final List<List<BlockingQueue<List<Routed>>>> queues;
  private final JavaWriter program;
  private final boolean dynamic;
  private final HashBucketAssigner assigner;

  TableWriter(
      FileStoreTable table,
      int number,
      List<List<BlockingQueue<List<Routed>>>> queues,
      JavaWriter program) {
    this.table = table;
    this.number = number;
    this.queues = queues;
    this.program = program;
    dynamic = table.bucketMode() == BucketMode.HASH_DYNAMIC;
    assigner =
        new HashBucketAssigner(
            table.snapshotManager(),
            JavaWriter.USER,
            table.store().newIndexFileHandler(),
            JavaWriter.THREADS,
            JavaWriter.THREADS,
            number,
            table.coreOptions().dynamicBucketTargetRowNum(),
            -1);
  }

  /** Returns 0: the readers count the events. */
  long run() throws Exception {
    String spill = Files.createTempDirectory(JavaWriter.USER).toString();
    try (TableWriteImpl<?> write =
        table.newWrite(JavaWriter.USER).withIOManager(IOManager.create(spill))) {
      boolean[] stopped = new boolean[queues.size()];
      for (long identifier = firstIdentifier(); !all(stopped); identifier++) {
        drain(write, stopped);
        assigner.prepareCommit(identifier);
        program.prepared(identifier, write.prepareCommit(all(stopped), identifier));
      }
    }
    return 0;
  }

  private long firstIdentifier() {
    return 1
        + table
            .snapshotManager()
            .latestSnapshotOfUser(JavaWriter.USER)
            .map(Snapshot::commitIdentifier)
            .orElse(0L);
  }

  /** Writes what the readers send up to their marks; notes which of them have nothing more. */
  private void drain(TableWriteImpl<?> write, boolean[] stopped) throws Exception {
    boolean[] ended = stopped.clone();
    boolean idle = false;
    while (!all(ended)) {
      boolean found = false;
      for (int reader = 0; reader < ended.length; reader++) {
        if (ended[reader]) {
          continue;
        }
        BlockingQueue<List<Routed>> queue = queues.get(reader).get(number);
        List<Routed> rows = idle ? queue.poll(1, TimeUnit.MILLISECONDS) : queue.poll();
        if (rows == null) {
          continue;
        }
        found = true;
        stopped[reader] = rows == JavaWriter.END_OF_TOPIC;
        ended[reader] = stopped[reader] || rows == JavaWriter.END_OF_COMMIT;
        for (Routed one : rows) {
          int bucket = one.bucketOrHash();
          write.write(one.row(), dynamic ? assigner.assign(BinaryRow.EMPTY_ROW, bucket) : bucket);
        }
      }
      idle = !found;
    }
  }

  private static boolean all(boolean[] flags) {
    for (boolean flag : flags) {
      if (!flag) {
        return false;
      }
    }
    return true;
  }
}
