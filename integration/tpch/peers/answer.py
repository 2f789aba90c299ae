"""answer.py PEER TABLES SCHEMA SQL runs the statement SQL over the directory TABLES.
It prints the rows as lines with '|' between columns. The end of stderr has the
seconds of the query without the start of PEER's session. PEER is duckdb or spark.
SCHEMA is JSON: by table a list of [column, type]."""
import glob, json, os, sys, time
from decimal import Decimal

peer, tables, schema, sql = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
cores = os.environ["PEER_CORES"]


def paths(name):
    one = os.path.join(tables, name + ".tbl")
    return [one] if os.path.exists(one) else sorted(glob.glob(os.path.join(tables, name, "*.tbl")))


def text(value):
    if value is None:
        return "NULL"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def duckdb_rows():
    import duckdb
    db = duckdb.connect()
    db.execute("set threads to " + cores)
    db.execute("set enable_progress_bar = false")  # it would be on standard output
    began = time.monotonic()
    for name, columns in schema.items():
        if name not in sql:
            continue
        # After the last '|' there is an empty field.
        typed = {column: kind for column, kind in columns} | {"nothing": "varchar"}
        db.execute(f"""create view {name} as select * from read_csv({paths(name)!r}, columns = {typed!r},
            delim = '|', header = false, auto_detect = false, quote = '', escape = '')""")
    return db.execute(sql).fetchall(), began


def spark_rows():
    from pyspark.sql import SparkSession
    spark = (SparkSession.builder.master(f"local[{cores}]").appName("tpch")
             .config("spark.ui.enabled", "false").config("spark.driver.memory", "2g")
             .config("spark.sql.shuffle.partitions", cores).getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    began = time.monotonic()
    for name, columns in schema.items():
        if name in sql:
            typed = ", ".join(f"{column} {kind}" for column, kind in columns)
            spark.read.csv(paths(name), schema=typed, sep="|", quote="").createOrReplaceTempView(name)
    rows = [tuple(row) for row in spark.sql(sql).collect()]
    return rows, began


rows, began = {"duckdb": duckdb_rows, "spark": spark_rows}[peer]()
took = time.monotonic() - began
for row in rows:
    print("|".join(map(text, row)))
print(f"took {took:.3f}", file=sys.stderr)
