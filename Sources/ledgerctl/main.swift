print("ledgerctl")
