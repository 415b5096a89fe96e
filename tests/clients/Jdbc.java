import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Time;
import java.util.Properties;

/** What a program does through pgjdbc; prints a line for each thing, which the test compares. */
public final class Jdbc {
    private Jdbc() {
    }

    public static void main(String[] arguments) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", arguments[1]);
        properties.setProperty("password", arguments[2]);
        properties.setProperty("prepareThreshold", "3");
        try (Connection connection = DriverManager.getConnection(arguments[0], properties)) {
            queries(connection);
            metadata(connection.getMetaData());
            warning(connection);
            time(connection);
            pieces(connection);
        }
    }

    private static void queries(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(
                        "SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC")) {
            StringBuilder found = new StringBuilder("groups");
            while (rows.next()) {
                String city = rows.getString("city");
                found.append(' ').append(rows.wasNull() ? "NULL" : city);
                found.append('=').append(rows.getLong("n"));
            }
            System.out.println(found);
        }
        try (PreparedStatement prepared = connection.prepareStatement(
                "SELECT COUNT(*) FROM people WHERE age >= ? AND city = ?")) {
            StringBuilder found = new StringBuilder("prepared");
            for (int round = 0; round < 10; round++) {
                prepared.setInt(1, 30);
                prepared.setString(2, "Oslo");
                try (ResultSet rows = prepared.executeQuery()) {
                    rows.next();
                    found.append(' ').append(rows.getLong(1));
                }
            }
            System.out.println(found);
        }
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery("SELECT nothing FROM people");
        } catch (SQLException error) {
            System.out.println("state " + error.getSQLState());
        }
    }

    private static void metadata(DatabaseMetaData data) throws SQLException {
        names("schemas", data.getSchemas(), "TABLE_SCHEM");
        names("catalogs", data.getCatalogs(), "TABLE_CAT");
        names("tables", data.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME");
        names("columns", data.getColumns(null, "public", "people", "%"), "COLUMN_NAME");
        names("types", data.getColumns(null, "public", "people", "%"), "TYPE_NAME");
        names("keys", data.getPrimaryKeys(null, "public", "cities"), "COLUMN_NAME");
        names("imported", data.getImportedKeys(null, "public", "people"), "FKTABLE_NAME");
        names("exported", data.getExportedKeys(null, "public", "people"), "FKTABLE_NAME");
        names("indexes", data.getIndexInfo(null, "public", "cities", false, true), "COLUMN_NAME");
        names("procedures", data.getProcedures(null, null, "%"), "PROCEDURE_NAME");
        names("privileges", data.getTablePrivileges(null, "public", "people"), "PRIVILEGE");
        try (ResultSet rows = data.getTypeInfo()) {
            int n = 0;
            while (rows.next()) {
                n++;
            }
            System.out.println("typeinfo " + (n > 20));
        }
    }

    private static void names(String what, ResultSet rows, String column) throws SQLException {
        try (ResultSet open = rows) {
            StringBuilder found = new StringBuilder(what);
            while (open.next()) {
                found.append(' ').append(open.getString(column));
            }
            System.out.println(found);
        }
    }

    private static void warning(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery("SELECT COUNT(*) FROM people WHERE city = 'Osol'");
            System.out.println("warning " + statement.getWarnings().getMessage());
        }
    }

    private static void time(Connection connection) throws SQLException {
        StringBuilder found = new StringBuilder("time");
        String sql = "SELECT joined FROM people"
            + " WHERE joined + ?::time >= TIMESTAMP '2025-12-31 12:00' GROUP BY 1";
        for (Object noon : new Object[] {Time.valueOf("12:30:00"), java.time.LocalTime.of(12, 30)}) {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setObject(1, noon);
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        found.append(' ').append(rows.getString(1));
                    }
                }
            }
        }
        System.out.println(found);
    }

    private static void pieces(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(7);
            int n = 0;
            try (ResultSet rows = statement.executeQuery(
                    "SELECT age, COUNT(*) FROM people GROUP BY age")) {
                while (rows.next()) {
                    n++;
                }
            }
            System.out.println("pieces " + n);
        }
        connection.rollback();
    }
}
