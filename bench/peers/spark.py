"""spark.py JOB CORES TEMPORARY INPUT OUTPUT [PATTERN] runs a job with Spark on this machine. JOB is wordcount, sort, grep -F
or grep -E. Its lines go to the directory OUTPUT."""
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, concat_ws, explode, split

job, cores, temporary, source, output = sys.argv[1:6]
spark = (SparkSession.builder.master(f"local[{cores}]").appName(job)
         .config("spark.ui.enabled", "false").config("spark.driver.memory", "4g")
         .config("spark.local.dir", temporary).config("spark.sql.shuffle.partitions", cores).getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
lines = spark.read.text(source)
if job == "wordcount":
    words = lines.select(explode(split("value", r"[ \t\n\x0b\f\r]+")).alias("word")).where("word != ''")
    lines = words.groupBy("word").count().select(concat_ws("\t", "word", "count"))
elif job == "sort":
    lines = lines.orderBy("value")
elif job == "grep -F":
    lines = lines.where(col("value").contains(sys.argv[6]))
elif job == "grep -E":
    lines = lines.where(col("value").rlike(sys.argv[6]))
else:
    sys.exit(f"no such job: {job}")
lines.write.text(output)
gateway = spark.sparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()  # ends Java
gateway.proc.wait()  # so its processor time counts
