"""What a rule may do with rows, wherever they are: on the driver, or with Spark. It knows no table and no view."""
