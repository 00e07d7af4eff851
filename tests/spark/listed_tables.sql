--- events
select id, day, n, timestamp_seconds(at) as at, cast(amount as decimal(10, 2)) as amount, parse_json(value) as value
from values
  (1L, 'a', 1, 1711846800, 10.50, '{"type":"buy","user":{"id":1,"name":"Ann"},"price":9.5,"qty":2,"tags":["x","y"],"ts":"2024-03-31T01:30:00Z","ok":true}'),
  (2L, 'a', 2, 1711850400, 0.01, '{"type":"sell","user":{"id":2,"name":"Bob"},"price":1e10,"qty":0,"tags":[],"ts":"2024-03-31 02:30:00","ok":false}'),
  (3L, 'b', null, 1704067199, -5.00, '{"type":"Buy","user":{"id":1},"price":0.1,"qty":7,"tags":["x",3,null],"ts":"2024-01-01","ok":null}'),
  (4L, 'b', 4, 1704067200, null, '{"type":"","user":{"id":3,"name":""},"price":-2.25,"qty":3,"tags":["z"],"ts":"2023-12-31T23:59:59.999999Z"}'),
  (5L, null, 0, null, 99999999.99, '{"type":"view","user":{"id":2,"name":"Bob"},"qty":1,"x y":"u","a.b":1,"ok":true}'),
  (6L, 'a', 3, 1704067201, 1.10, null),
  (7L, 'c', 1, 1711843199, 2.20, 'null'),
  (8L, 'c', -1, 1711843200, 3.30, '{"type":null,"user":null,"price":null,"qty":null,"tags":null}'),
  (9L, 'c', 2147483647, 0, 4.40, '{"type":"buy","user":{"id":4,"name":"Dé \\"q\\""},"price":3,"qty":5,"tags":["y","y"],"ts":"2024-06-30T12:00:00+02:00","ok":false}'),
  (10L, ' ', -2147483648, -1, 0.00, '{"type":"sell","user":{"id":1,"name":"Ann"},"price":2.5,"qty":-4,"tags":["x"],"Type":"SELL"}'),
  (11L, 'a', 5, 1711936800, 7.70, '{}'),
  (12L, 'b', 6, 1719741600, 8.80, '{"type":"buy","user":{"id":5,"name":"Eve"},"price":12.345,"qty":10,"tags":["x","z"],"ok":true,"user.id":77}')
as t(id, day, n, at, amount, value);
--- users
select cast(id as bigint) as id, name, cast(born as date) as born, tags, home, scores, parse_json(profile) as profile
from values
  (1, 'Ann', '1990-02-28', array('x', 'y'), named_struct('city', 'Rome', 'zip', 10), map('a', 1, 'b', 2), '{"level":3,"langs":["it","en"],"address":{"city":"Rome","geo":[1.5,2.5]}}'),
  (2, 'Bob', '1988-02-29', array(), named_struct('city', null, 'zip', 20), map(), '{"level":"7","langs":[],"address":{"city":"Oslo"}}'),
  (3, null, '2000-12-31', array(null, 'y'), null, null, '{"level":1.5,"langs":"none"}'),
  (4, 'Dé', null, null, named_struct('city', 'Bern', 'zip', null), map('a', null), null),
  (6, 'Zoe', '1970-01-01', array('z'), named_struct('city', 'Rome', 'zip', 10), map('c', 3), '{"level":null,"address":null}')
as t(id, name, born, tags, home, scores, profile);
--- times
select id, timestamp_micros(us) as ts, cast(ntz as timestamp_ntz) as ntz, cast(d as date) as d,
  case when id % 3 = 0 then to_variant_object(named_struct('at', timestamp_micros(us), 'ntz', cast(ntz as timestamp_ntz), 'd', cast(d as date)))
    else parse_json(to_json(named_struct('at', txt, 'ntz', ntz, 'd', d))) end as v
from values
  (1, 1711846799999999L, '2024-03-31 01:59:59.999999', '2024-03-31', '2024-03-31T00:59:59.999999Z'),
  (2, 1711846800000000L, '2024-03-31 02:30:00', '2024-03-31', '2024-03-31 02:30:00'),
  (3, 1711850400000001L, '2024-03-31 03:00:00', '2024-03-31', '2024-03-31 03:00:00'),
  (4, 1710053999000000L, '2024-03-10 01:59:59', '2024-03-10', '2024-03-10 02:30:00'),
  (5, 1710054000000000L, '2024-03-10 02:30:00', '2024-03-10', '2024-03-10T10:00:00Z'),
  (6, 1730611800000000L, '2024-11-03 01:30:00', '2024-11-03', '2024-11-03 01:30:00'),
  (7, 1730615400000000L, '2024-11-03 01:30:00', '2024-11-03', '2024-11-03T01:30:00-05:00'),
  (8, 0L, '1970-01-01 00:00:00', '1970-01-01', '1970-01-01'),
  (9, -1L, '1969-12-31 23:59:59.999999', '1969-12-31', '1969-12-31 23:59:59.999999'),
  (10, -62135596800000000L, '0001-01-01 00:00:00', '0001-01-01', '0001-01-01'),
  (11, 253402300799999999L, '9999-12-31 23:59:59.999999', '9999-12-31', '9999-12-31 23:59:59.999999'),
  (12, null, null, null, null),
  (13, -2208988800000000L, '1900-01-01 00:00:00', '1900-01-01', '1900-01-01 00:00:00'),
  (14, 1704067200000000L, '2024-01-01 00:00:00', '2024-01-01', '2024-01-01'),
  (15, -12219292800000000L, '1582-10-15 00:00:00', '1582-10-15', '1582-10-04 12:00:00')
as t(id, us, ntz, d, txt);
--- nums
select id, cast(i as int) as i, cast(b as bigint) as b, cast(f as float) as f, cast(d as double) as d,
  cast(m as decimal(38, 18)) as m, cast(c as decimal(9, 2)) as c, s, timestamp_micros(us) as ts, cast(ok as boolean) as ok,
  cast(s as binary) as bin, cast(i % 128 as tinyint) as y, cast(i % 32768 as smallint) as h, parse_json(v) as v
from values
  (1, '1', '1', '1', '1', '1', '1', 'a', 0L, 'true', '{"x":1,"t":"a","d":1.0}'),
  (2, '-1', '-1', '-0.0', '-0.0', '0', '0', 'b', 1L, 'false', '{"x":-0.0,"t":"b","d":0}'),
  (3, '0', '0', '0', '0', '0.000000000000000001', '0.01', '', -1L, null, '{"x":0,"t":"","d":0.1}'),
  (4, '2147483647', '9223372036854775807', 'NaN', 'NaN', '12345678901234567890.123456789012345678', '9999999.99', 'NaN', 1000000L, 'true', '{"x":9223372036854775807,"t":"NaN","d":9223372036854775808}'),
  (5, '-2147483648', '-9223372036854775808', 'Infinity', 'Infinity', '-12345678901234567890.123456789012345678', '-9999999.99', 'Infinity', 999999L, 'false', '{"x":-9223372036854775808,"t":"Infinity","d":-9223372036854775809}'),
  (6, '7', '9007199254740993', '-Infinity', '-Infinity', '0.1', '0.10', repeat('p', 40), 1711846800000000L, 'true', '{"x":9007199254740993,"d":0.30000000000000004}'),
  (7, '8', '9007199254740992', '0.1', '0.1', '0.3', '1.10', concat(repeat('p', 40), 'q'), 1711846800000001L, null, '{"x":9007199254740992.0,"t":"p","d":1e300}'),
  (8, '127', '16777217', '16777217', '16777217', '99999999999999999999', '1.99', concat(repeat('p', 31), '\U0010FFFF', 'z'), 1711846800000999L, 'true', '{"x":16777217,"d":1e-320,"t":"long"}'),
  (9, null, null, null, null, null, null, null, null, null, null),
  (10, '128', '4294967296', '3.4028235E38', '1.7976931348623157E308', '-0.000000000000000001', '-0.01', 'Zebra', 1711846799999999L, 'false', '{"x":"12","t":12,"d":"0.1"}'),
  (11, '32768', '1099511627776', '1.4E-45', '4.9E-324', '1.100000000000000000', '1.10', 'zebra', 123456789123456L, 'true', '{"x":true,"t":null,"d":null}'),
  (12, '2', '2', 'NaN', '-0.0', '2', '2.00', 'é', 1711846800001000L, 'false', '{"x":{"y":1},"t":["a"],"d":123456789012345678901234567890.12345678}'),
  (13, '3', '3', '2.5', '2.5', '2.5', '2.50', 'e\u0301', 1711846800000000L, 'true', '{"x":2.5,"t":"é","d":2.50}'),
  (14, '4', '4', '-2.5', '-2.5', '-2.5', '-2.50', ' a ', 1711846800000000L, 'false', '{"x":-2.5,"t":" a ","d":-2.5}')
as t(id, i, b, f, d, m, c, s, us, ok, v);
--- docs
select id, parse_json(v) as v, parse_json(w) as w from values
  (1, '{"a":{"b":{"c":{"d":[{"e":1},{"e":2}]}}},"l":[[1,2],[3,[4,5]]],"o":{}}', '{"k":"a"}'),
  (2, '{"a":{"b":{"c":{"d":[]}}},"l":[],"o":{"p":null}}', '[1,2,3]'),
  (3, '{"a":{"b":{"c":null}},"l":null,"o":[1]}', '"text"'),
  (4, '{"a":{"b":"leaf"},"l":[1,"two",3.5,true,null,{"k":"v"}],"o":"s"}', '3.14'),
  (5, '{"a":[{"b":1},{"b":2,"c":[7]}],"l":[{"m":1},{"m":"x"}]}', 'true'),
  (6, '[{"a":1},{"a":2}]', 'null'),
  (7, '"just text"', null),
  (8, '{"A":1,"a":2,"":3,"a b":4,"a.b":5,"a\\"b":6,"a''b":7,"ü":8,"$":9,"0":10,"*":11,"a[0]":12,"`":13}', '{"k":"A"}'),
  (9, '{"a":{"b":{"c":{"d":[{"e":"12"},{"f":[{"g":9}]}]}}},"l":[[],[[]]],"o":{"p":{"q":true}}}', '{"k":{"z":[0]}}'),
  (10, null, '{}')
as t(id, v, w);
--- catalog
create schema shop;
create schema archive;
create table shop.orders using delta location '{tasks}/orders';
create table archive.orders using delta as select id, parse_json(concat('{{"a":', 4 - id, '}}')) as v from range(1, 6);
create table shop.plain using parquet as select 1 as id, 'p' as p;
create table shop.with_struct using delta as select 1 as id, struct(struct(1 as orders) as shop) as s;
create view shop.recent as select * from shop.orders where id < 3;
create view shop.renamed (k, w) as select id, v from shop.orders;
create view shop.totals (k, total) as select v:a::int, count(*) as n from shop.orders group by 1;
create view shop.nested_view as select v:a::int as a, v from shop.recent;
create view shop.two_tables as select o.id, a.v from shop.orders o join archive.orders a on o.v:a::int = a.v:a::int;
create view shop.union_view as select id, v from shop.orders union all select id, v from archive.orders;
create view shop.cte_view as with orders as (select id + 1 as id, v from shop.orders) select id, v:a::int as a from orders;
create table shop.gone using delta as select 1 as id;
create view shop.broken as select * from shop.gone;
drop table shop.gone;
create temporary view temporary as select * from shop.orders;
create table shop.history (id int, v variant) using delta location '{jars}/history' tblproperties ('delta.enableChangeDataFeed' = 'true');
insert into shop.history values (1, parse_json('{{"a":1}}')), (2, parse_json('{{"a":2}}'));
insert into shop.history values (3, null);
update shop.history set v = parse_json('{{"a":5}}') where id = 2;
delete from shop.history where id = 1;
create table shop.padded (id int, c char(5), w varchar(5), v variant, p char(3)) using delta partitioned by (p) location '{jars}/chars';
create table shop.plain_padded (id int, c char(5), w varchar(5), v variant, p char(3)) using parquet;
insert into shop.plain_padded values (1, 'a', 'a', parse_json('{{"c":"a"}}'), 'x'), (2, 'b', 'b    ', parse_json('{{"c":"b    "}}'), 'y'),
  (3, null, null, null, null), (4, '', '', parse_json('{{"c":"x"}}'), 'a'), (5, 'abcde', 'x', parse_json('{{"c":"abcde"}}'), 'xyz'), (6, 'é', 'x  ', parse_json('{{"c":"é    "}}'), 'é');
insert into shop.padded select * from shop.plain_padded;
