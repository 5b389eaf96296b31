-- Orders as analysts may see them: the customer's region beside the order's own fields. Who the customer is, and the gender,
-- are left out; of the day of registration, the year is left.
CREATE TABLE IF NOT EXISTS `store_orders_flat`
DISTRIBUTED BY HASH(`store_order_id`) INTO 3 BUCKETS
WITH (
  'changelog.mode' = 'append',
  'kafka.cleanup-policy' = 'delete',
  'kafka.producer.compression.type' = 'zstd',
  'value.fields-include' = 'all'
)
AS
SELECT
  `store_id`,
  `store_order_id`,
  `coupon_code`,
  `date` AS `order_date`,
  `status`,
  `customer`.`regionid` AS `region`,
  CAST(EXTRACT(YEAR FROM TO_TIMESTAMP_LTZ(`customer`.`registertime`, 3)) AS INT) AS `customer_since`,
  `order_lines`
FROM `store_orders_once`;
