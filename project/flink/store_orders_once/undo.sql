DROP TABLE IF EXISTS `store_orders_once`;
