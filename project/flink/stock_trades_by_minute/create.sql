-- What each user bought and sold of each symbol in each minute of the trades' own time. Amounts are pennies, and BIGINT:
-- a minute can hold more trades than an INT could add up. A minute is written once, when it is over, so the table only grows.
CREATE TABLE IF NOT EXISTS `stock_trades_by_minute`
WITH (
  'changelog.mode' = 'append',
  'kafka.cleanup-policy' = 'delete',
  'kafka.producer.compression.type' = 'zstd',
  'value.fields-include' = 'all'
)
AS
SELECT
  `window_start`,
  `window_end`,
  `userid`,
  `side`,
  `symbol`,
  COUNT(*) AS `trades`,
  SUM(CAST(`quantity` AS BIGINT)) AS `quantity`,
  SUM(CAST(`quantity` AS BIGINT) * `price`) AS `total_price`
FROM TABLE(TUMBLE(TABLE `stock_trades`, DESCRIPTOR(`$rowtime`), INTERVAL '1' MINUTE))
GROUP BY `window_start`, `window_end`, `userid`, `side`, `symbol`;
