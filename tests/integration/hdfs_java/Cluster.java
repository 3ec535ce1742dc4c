import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/**
 * A namenode, formatted if it is new, or some datanodes in one process; settings come from the
 * class path. Arguments: "namenode" and its folder, or "datanodes" and a folder for each. The
 * namenode does what the lines of its input say and answers each with "done".
 */
public final class Cluster {
    private Cluster() {}

    public static void main(String[] arguments) {
        DefaultMetricsSystem.setMiniClusterMode(true);
        try {
            if (arguments[0].equals("namenode")) {
                serveNames(arguments[1]);
            } else {
                serveData(arguments);
            }
            System.exit(0);
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    private static void serveNames(String folder) throws Exception {
        HdfsConfiguration conf = new HdfsConfiguration();
        conf.set("dfs.namenode.name.dir", folder);
        if (!new File(folder, "current").exists()) {
            NameNode.format(conf);
        }
        NameNode.createNameNode(new String[0], conf);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            obey((DistributedFileSystem) FileSystem.get(conf), line.split(" "));
            System.out.println("done");
        }
    }

    private static void obey(DistributedFileSystem files, String[] words) throws Exception {
        switch (words[0]) {
            case "safemode" -> files.setSafeMode(SafeModeAction.valueOf(words[1]));
            case "quota" -> files.setQuota(
                    new Path(words[1]), Long.parseLong(words[2]), HdfsConstants.QUOTA_DONT_SET);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void serveData(String[] arguments) throws Exception {
        for (int index = 1; index < arguments.length; index++) {
            HdfsConfiguration conf = new HdfsConfiguration();
            conf.set("dfs.datanode.data.dir", arguments[index]);
            DataNode.createDataNode(new String[0], conf);
        }
        while (System.in.read() >= 0) {
            continue;
        }
    }
}
