-- Each trade with its total. Prices and totals are pennies; a total is at most 4,999 shares at 999 pennies, so it fits INT.
CREATE TABLE IF NOT EXISTS `stock_trades_with_totals`
WITH (
  'changelog.mode' = 'append',
  'kafka.cleanup-policy' = 'delete',
  'kafka.producer.compression.type' = 'zstd',
  'value.fields-include' = 'all'
)
AS
SELECT
  `$rowtime` AS `trade_timestamp`,
  `userid`,
  `side`,
  `symbol`,
  `quantity`,
  `price`,
  `quantity` * `price` AS `total_price`
FROM `stock_trades`;
