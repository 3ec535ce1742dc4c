import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/** A Hive Metastore whose database has the tables of locks, which the server itself does not create. */
public class Metastore {
    public static void main(String[] args) throws Throwable {
        TxnDbUtil.prepDb(MetastoreConf.newMetastoreConf());
        HiveMetaStore.main(args);
    }
}
