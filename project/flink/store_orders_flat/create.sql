-- Orders of the stores, the customer's fields beside the order's, each order once: of several records of an order the one
-- that Kafka received first stays, which keeps the table append-only. How long an order is remembered: properties.toml.
CREATE TABLE IF NOT EXISTS `store_orders_flat`
DISTRIBUTED BY HASH(`store_order_id`) INTO 3 BUCKETS
WITH (
  'changelog.mode' = 'append',
  'kafka.cleanup-policy' = 'delete',
  'kafka.producer.compression.type' = 'zstd',
  'value.fields-include' = 'all'
)
AS
WITH `flat` AS (
  SELECT
    `store_id`,
    `store_order_id`,
    `coupon_code`,
    `date`,
    `status`,
    `customer`.`registertime` AS `registertime`,
    `customer`.`userid` AS `userid`,
    `customer`.`regionid` AS `regionid`,
    `customer`.`gender` AS `gender`,
    `order_lines`,
    `$rowtime` AS `received`
  FROM `store_orders`
),
`numbered` AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY `store_order_id` ORDER BY `received` ASC) AS `copy`
  FROM `flat`
)
SELECT
  `store_id`,
  `store_order_id`,
  `coupon_code`,
  `date`,
  `status`,
  `registertime`,
  `userid`,
  `regionid`,
  `gender`,
  `order_lines`
FROM `numbered`
WHERE `copy` = 1;
