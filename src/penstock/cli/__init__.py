"""The command: arguments in, tables, trees and JSON out. What it does, it does through the facade."""
