-- Each order of the stores once, as it came: of several records of an order, the one that Kafka received first stays,
-- which keeps the table append-only. How long an order is remembered: properties.toml.
-- Flink remembers orders here and nowhere else, so that the statements that read this table can be edited in place.
CREATE TABLE IF NOT EXISTS `store_orders_once`
DISTRIBUTED BY HASH(`store_order_id`) INTO 3 BUCKETS
WITH (
  'changelog.mode' = 'append',
  'kafka.cleanup-policy' = 'delete',
  'kafka.producer.compression.type' = 'zstd',
  'value.fields-include' = 'all'
)
AS
WITH `numbered` AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY `store_order_id` ORDER BY `$rowtime` ASC) AS `copy`
  FROM `store_orders`
)
SELECT
  `store_id`,
  `store_order_id`,
  `coupon_code`,
  `date`,
  `status`,
  `customer`,
  `order_lines`
FROM `numbered`
WHERE `copy` = 1;
