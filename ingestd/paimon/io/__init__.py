"""Access to the files of tables on local disks, HDFS and object stores."""
