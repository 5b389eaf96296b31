DROP TABLE IF EXISTS `stock_trades_with_totals`;
