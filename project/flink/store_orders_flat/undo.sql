DROP TABLE IF EXISTS `store_orders_flat`;
