DROP TABLE IF EXISTS `stock_trades_by_minute`;
