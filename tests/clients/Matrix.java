import java.sql.*;
import java.util.*;

/** Prints what pgjdbc does in one query mode: a cell a line, its name, a tab, and JSON. */
public class Matrix {
    static final String GROUPED = " GROUP BY 1 ORDER BY 1";

    interface Binder {
        void bind(PreparedStatement statement) throws SQLException;
    }

    static List<String> ask(Connection connection, String sql, Binder binder) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            List<String> found = new ArrayList<>();
            for (int time = 0; time < 6; time++) { // from the fifth on, values are binary
                found.clear();
                binder.bind(statement);
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        found.add(rows.getString(1));
                    }
                }
            }
            return found;
        }
    }

    static String json(List<String> values) {
        StringJoiner joined = new StringJoiner(", ", "[", "]");
        for (String one : values) {
            joined.add(one == null ? "null" : '"' + one + '"');
        }
        return joined.toString();
    }

    static void print(String cell, String value) {
        System.out.println(cell + "\t" + value);
    }

    public static void main(String[] arguments) throws Exception {
        String days = "SELECT joined FROM people WHERE ";
        try (Connection c = DriverManager.getConnection(arguments[0], arguments[1], arguments[2])) {
            print("dates", json(ask(c, days + "joined BETWEEN ? AND ?" + GROUPED, statement -> {
                statement.setDate(1, java.sql.Date.valueOf("2025-03-01"));
                statement.setObject(2, java.time.LocalDate.of(2025, 3, 3));
            })));
            print("timestamps", json(ask(c, days + "joined > ?::timestamp" + GROUPED, statement ->
                statement.setTimestamp(1, Timestamp.valueOf("2025-12-29 12:00:00")))));
            print("intervals", json(ask(c, days + "joined > DATE '2025-12-29' + ?::interval" + GROUPED,
                statement -> statement.setObject(1, new org.postgresql.util.PGInterval("1 day")))));
            print("arrays", json(ask(c, "SELECT city FROM people WHERE city = ANY(?)" + GROUPED,
                statement -> statement.setArray(1, c.createArrayOf("text", new String[] {"Oslo", "Rome"})))));
            print("NULLs", json(ask(c, "SELECT city FROM people" + GROUPED, statement -> { })));
            List<String> ages = new ArrayList<>();
            try (PreparedStatement aged = c.prepareStatement("SELECT age FROM people WHERE age = ? GROUP BY 1")) {
                for (int age = 30; age < 36; age++) {
                    aged.setInt(1, age);
                    try (ResultSet rows = aged.executeQuery()) {
                        rows.next();
                        ages.add(String.valueOf(rows.getInt(1)));
                    }
                }
            }
            print("prepared", ages.toString());
            try (Statement statement = c.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT city FROM people" + GROUPED)) {
                print("metadata", "[\"" + rows.getMetaData().getColumnName(1) + "\"]");
            }
            c.setAutoCommit(false);
            int n = 0;
            try (Statement statement = c.createStatement()) {
                statement.setFetchSize(3);
                try (ResultSet rows = statement.executeQuery("SELECT city FROM people" + GROUPED)) {
                    while (rows.next()) {
                        n++;
                    }
                }
            }
            c.commit();
            print("cursors", String.valueOf(n));
            c.setAutoCommit(true);
            try (Statement statement = c.createStatement()) {
                statement.execute("DISCARD ALL");
            }
            c.setReadOnly(true);
            print("pool reset", String.valueOf(c.isValid(10)));
        }
    }
}
