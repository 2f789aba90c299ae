select l_returnflag, l_linestatus,
       sum(l_quantity), sum(l_extendedprice),
       sum(l_extendedprice * (1 - l_discount)),
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
       cast(round(avg(l_quantity), 2) as decimal(15, 2)),
       cast(round(avg(l_extendedprice), 2) as decimal(15, 2)),
       cast(round(avg(l_discount), 2) as decimal(15, 2)),
       count(*)
from lineitem
where l_shipdate <= date '1998-09-02'
group by l_returnflag, l_linestatus
order by l_returnflag, l_linestatus
