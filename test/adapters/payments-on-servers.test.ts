// The core of the state table on servers. payments.long.test.ts has all of it there.
import express5 from "express";
import { expressAdapter } from "./express-adapter.ts";
import { describePayments } from "./payments/describe-payments.ts";
import { coreRows } from "./payments/rows.ts";
import { isOnMysqlAlone } from "../support/runs/share.ts";

const express = expressAdapter("express 5", express5);
describePayments(coreRows, [express], ["mariadb"]);
if (!isOnMysqlAlone) describePayments(coreRows, [express], ["postgresql"]);
